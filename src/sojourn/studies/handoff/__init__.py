"""Roaming subscribers and three ways to hand them over: what paper 001 claims, measured."""
