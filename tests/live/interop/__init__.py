"""What people try first with a new broker, by paho."""
