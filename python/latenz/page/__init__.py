"""Pages that people look at: how they are embedded, styled, and drawn; pages of plots."""
