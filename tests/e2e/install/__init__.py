"""The chart, installed by Helm on the real control plane; its containers run as processes of this machine.

No image and no kubelet are here. `kubelet.py` plays the kubelet for the pods of a release: the commands,
environment, ports, probes and mounts of the pods that the API server holds, with a token of the chart's own
ServiceAccount. `release.py` has Helm install, and swaps the Service for an ExternalName of this machine.
"""
