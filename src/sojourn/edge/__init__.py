"""What runs at the edge, beside clients and where they connect: sources, displayers, queues (paper 003)."""
