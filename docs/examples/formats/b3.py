import struct

IV = (0x6A09E667, 0xBB67AE85, 0x3C6EF372, 0xA54FF53A, 0x510E527F, 0x9B05688C, 0x1F83D9AB, 0x5BE0CD19)
ORDER = (2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8)
QUADS = ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15),
         (0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14))
START, END, PARENT, ROOT = 1, 2, 4, 8

def turn(x, n):
    return (x >> n | x << 32 - n) & 0xFFFFFFFF

def compress(value, block, counter, flags):
    words = struct.unpack("<16I", block.ljust(64, b"\0"))
    v = [*value, *IV[:4], counter & 0xFFFFFFFF, counter >> 32, len(block), flags]
    for _ in range(7):
        for i, (a, b, c, d) in enumerate(QUADS):
            for word, n, m in ((words[2 * i], 16, 12), (words[2 * i + 1], 8, 7)):
                v[a] = v[a] + v[b] + word & 0xFFFFFFFF
                v[d] = turn(v[d] ^ v[a], n)
                v[c] = v[c] + v[d] & 0xFFFFFFFF
                v[b] = turn(v[b] ^ v[c], m)
        words = [words[i] for i in ORDER]
    return [v[i] ^ v[i + 8] for i in range(8)]

def tree(data, counter, root):
    if len(data) > 1024:  # the left side is the longest power of two of chunks of 1024 bytes that leaves something
        left = 1024 << ((len(data) - 1) // 1024).bit_length() - 1
        pair = tree(data[:left], counter, 0) + tree(data[left:], counter + left // 1024, 0)
        return compress(IV, struct.pack("<16I", *pair), 0, PARENT | root)
    value, blocks = IV, max(1, -(-len(data) // 64))
    for i in range(blocks):
        flags = (START if i == 0 else 0) | (END | root if i == blocks - 1 else 0)
        value = compress(value, data[64 * i:64 * i + 64], counter, flags)
    return value

def b3(data):
    return struct.pack("<8I", *tree(data, 0, ROOT)).hex()
