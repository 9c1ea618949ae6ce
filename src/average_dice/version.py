"""The version, below everything else: any module can say it, also where the package is not installed."""

__version__ = "0.1.0"
