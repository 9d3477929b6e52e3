TEXTS = ["a bad dog.", "hello, you", "e", "what <pad> is </s> <unk>"]
