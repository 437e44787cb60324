"""Measures Signoff beside comparable libraries in one run: `signoff bench`. Nothing in production imports this."""
