"""`demo` lies beside the package, and is not installed with it: this says where."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))
