"""`python -m orchestrator` is `netwarp`."""

import sys

from .cli import main

sys.exit(main())
