"""What a tokenizer's file says, byte for byte. Pure code over plain values."""
