"""The terminal as a channel: asks are shown and answered in place."""
