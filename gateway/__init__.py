"""The process that puts an agent's asks to people, and drives its runs. Knows agents; knows no channel's vendor."""
