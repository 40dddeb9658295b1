"""The hypervisor from outside: images made of system files, boots, traces, costs.

What runs below the guests is C++ in hypervisor/; docs/hypervisor.md tells about both.
"""
