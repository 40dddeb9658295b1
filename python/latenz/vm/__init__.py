"""Real-time virtual machines: what they boot, how they are started, and measuring in them."""
