"""What the axes of a measurement agree on: conditions, and the settings that all kinds share."""
