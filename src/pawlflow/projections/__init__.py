"""What a journal tells: views of one instance, each a pure function of its turns."""
