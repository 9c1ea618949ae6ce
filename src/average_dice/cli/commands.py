"""All the commands. Each module adds its own, in the order in which --help shows them."""

# isort: off
from . import evaluating  # noqa: F401
from . import tasks  # noqa: F401
from . import benchmarking  # noqa: F401
# isort: on

from .app import app as app
