"""Agents to try Signoff with. They need no key; each one's `build(model)` puts the same agent on another model."""
