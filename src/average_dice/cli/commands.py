"""All the commands. Each module adds its own, in the order in which --help shows them."""

# isort: off
from average_dice.cli import evaluating  # noqa: F401
from average_dice.cli import tasks  # noqa: F401
from average_dice.cli import benchmark  # noqa: F401
# isort: on

from average_dice.cli.app import app as app
