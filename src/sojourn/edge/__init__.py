"""What runs beside the client and at its broker's edge: sources, displayers, queues, quenching (paper 003)."""
