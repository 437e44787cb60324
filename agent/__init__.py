"""What an agent is: tools, the gate before them, and the loop that moves a run. No Redis, HTTP or chat in here."""
