"""Reports: tables, figures and a page of any runs."""
