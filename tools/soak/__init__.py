"""The soak: commands that are killed, and whose files are damaged, end with the same bytes.

A scenario is a command. It is run twice without interruption; then it lives many lives, in which it is killed
at random moments, files are damaged between a kill and the next start, and the same command is given again
until it is done. Its rows and learners must be those of the uninterrupted run, byte for byte; where a file
was damaged, an error that names it is the other allowed answer: then it is put back, and the life goes on.
"""
