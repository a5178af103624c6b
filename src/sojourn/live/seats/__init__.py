"""Copies of brokers' journals at other processes: connections, folders, and brokers played as guests."""
