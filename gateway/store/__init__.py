"""Everything durable, in Redis or Valkey. The one place that knows Redis; the rest sees `gateway.ports.Store`."""
