"""Pages in Debian's Chromium, without a window: fixtures for tests, which have `addresses` of their own."""

from __future__ import annotations

import os
import shutil
import time

import pytest

CI = os.environ.get("CI") == "true"


def _missing() -> str | None:
    try:
        import selenium  # noqa: F401
    except ImportError:
        return "selenium is not installed"
    for program in ("chromium", "chromedriver"):
        if shutil.which(program) is None:
            return f"{program} is not installed"
    return None


@pytest.fixture(scope="module")
def driver():
    reason = _missing()
    if reason is not None:
        if CI:
            pytest.fail(f"the page was not tested in a browser: {reason}")
        pytest.skip(reason)
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = str(shutil.which("chromium"))
    for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
        options.add_argument(argument)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    browser = webdriver.Chrome(options=options, service=webdriver.ChromeService(shutil.which("chromedriver")))
    browser.set_script_timeout(60)
    yield browser
    browser.quit()


class Browser:
    def __init__(self, driver, addresses):
        self.driver, self.addresses = driver, addresses

    def open(self, name: str = "sample", view: str = "", width: int = 1200, height: int = 900) -> None:
        self.driver.execute_cdp_cmd(
            "Emulation.setDeviceMetricsOverride",
            {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 500},
        )
        self.driver.get("about:blank")  # or else only the part after "#" would change
        self.driver.get(f"{self.addresses[name]}#{view}")
        self.wait("return document.querySelector('#overview dl')")

    def run(self, script: str, *arguments):
        return self.driver.execute_script(script, *arguments)

    def wait(self, script: str, *arguments):
        """The first true result."""
        for _ in range(1200):  # a busy machine may take long
            result = self.run(script, *arguments)
            if result:
                return result
            time.sleep(0.05)
        raise AssertionError(f"never true: {script}")

    def all(self, selector: str):
        return self.driver.find_elements("css selector", selector)

    def one(self, selector: str):
        return self.driver.find_element("css selector", selector)

    def texts(self, selector: str) -> list[str]:
        return self.run(
            "return [...document.querySelectorAll(arguments[0])].map((e) => e.textContent)", selector
        )

    def draw(self, selector: str) -> None:
        """Scrolls there, so that it is drawn. (scrollIntoView would also move where the Tab key begins.)"""
        place = "document.querySelector(arguments[0]).getBoundingClientRect().top + scrollY"
        self.run(f"window.scrollTo(0, {place})", selector)
        self.wait(
            "return document.querySelector(arguments[0]).querySelector('svg[role=img], canvas, tbody tr')",
            selector,
        )

    def click(self, selector: str) -> None:
        self.run("document.querySelector(arguments[0]).click()", selector)

    def slide(self, component: int, depth: int, value: float) -> None:
        self.run(
            "const s = document.querySelector(arguments[0]); s.value = arguments[1];"
            "s.dispatchEvent(new Event('input', { bubbles: true }))",
            f"input[aria-label='component {component} at depth {depth}']",
            value,
        )

    def numbers(self, figure: str) -> list[list[str]]:
        """The rows of the table below a figure."""
        self.draw(f"#{figure}")
        self.click(f"#{figure} .numbers > summary")
        self.wait("return document.querySelector(arguments[0])", f"#{figure} .numbers td")
        return self.run(
            "return [...document.querySelectorAll(arguments[0])]"
            ".map((row) => [...row.cells].map((cell) => cell.textContent))",
            f"#{figure} .numbers tbody tr",
        )

    def clean(self) -> None:
        """No errors; a refusal by the policy is one, too."""
        assert [entry for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"] == []


@pytest.fixture
def browser(driver, addresses):
    result = Browser(driver, addresses)
    yield result
    result.clean()
