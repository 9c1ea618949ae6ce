"""All commands. Each module adds its own, in the order of --help."""

# isort: off
from average_dice.cli import evaluation  # noqa: F401
from average_dice.cli import planning  # noqa: F401
from average_dice.cli import conversion  # noqa: F401
from average_dice.cli import robust  # noqa: F401
from average_dice.cli import inspection  # noqa: F401
from average_dice.cli import tasks  # noqa: F401
from average_dice.cli import benchmark  # noqa: F401
# isort: on

from average_dice.cli.app import app as app
