"""The embedded index as seen from outside: who holds it, and what is in it."""
