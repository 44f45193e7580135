from piaget.cli import main

raise SystemExit(main())
