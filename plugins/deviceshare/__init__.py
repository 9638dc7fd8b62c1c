"""Which cards a pod gets, and how much of each: slices of memory and cores.

Packs slices on cards and explains what did not fit. How a slice is written into annotations follows
the card's backend; holding a container to its slice is the work of ``volcano_py.shim``.
"""

from volcano_py.plugins.deviceshare.plugin import DeviceSharePlugin

__all__ = ["DeviceSharePlugin"]
