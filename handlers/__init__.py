"""Where people meet the gateway: one folder a channel, both directions. No channel imports another."""
