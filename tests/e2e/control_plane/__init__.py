"""The control plane as processes on loopback; `build.sh` in this folder makes its binaries."""

from e2e.control_plane.plane import ControlPlane, missing_binaries

__all__ = ["ControlPlane", "missing_binaries"]
