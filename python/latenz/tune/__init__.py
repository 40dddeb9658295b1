"""What keeps a machine from being real-time: a catalogue of settings, checks, and changes."""
