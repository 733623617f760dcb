"""For authors: begin, check, prove, pack and export a lesson."""
