"""Conversion between two vocabularies, byte by byte: pure code over plain values."""
