SOURCE: int
