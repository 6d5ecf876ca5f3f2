"""Writes the archives beside it: each by a real writer, in each form that writers have. Needs GNU tar.

Every image is a PNG of one grey pixel, and its label is the grey value.
"""
import io, os, struct, subprocess, tarfile, tempfile, zlib

HERE = os.path.dirname(os.path.abspath(__file__))
tarfile.RECORDSIZE = 512
LONG = "/".join(["a-folder-with-a-rather-long-name"] * 5)


def png(grey):
    def chunk(name, body):
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))
    header = struct.pack(">IIBBBBB", 1, 1, 8, 0, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(bytes([0, grey]))) + chunk(b"IEND", b"")


def by_command(name, keys, options, prepare=None):
    """By GNU tar."""
    with tempfile.TemporaryDirectory() as folder:
        files = []
        for grey, key in enumerate(keys, 1):
            path = os.path.join(folder, key)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            for suffix, body in ((".cls", str(grey).encode()), (".png", png(grey))):
                open(path + suffix, "wb").write(body)
                files.append(key + suffix)
        if prepare:
            prepare(folder)
        out = os.path.join(HERE, name)
        subprocess.run(["tar", "-b1", "--owner=0", "--group=0", "--mtime=2026-01-01", "-cf", out, *options, "--", *files], cwd=folder, check=True)


def by_python(name, keys, form):
    """By Python's tarfile, which is what WebDataset's writer uses."""
    with tarfile.open(os.path.join(HERE, name), "w", format=form) as out:
        for grey, key in enumerate(keys, 1):
            for suffix, body in ((".png", png(grey)), (".cls", str(grey).encode())):
                entry = tarfile.TarInfo(key + suffix)
                entry.size = len(body)
                out.addfile(entry, io.BytesIO(body))


def sparse(folder):
    """The second image becomes a file with many holes, so that its map needs a block of its own."""
    with open(os.path.join(folder, "2.png"), "wb") as file:
        for part in range(6):
            file.seek(part * 65536)
            file.write(png(2))
        file.truncate(6 * 65536)


def links(folder):
    os.remove(os.path.join(folder, "2.png"))
    os.link(os.path.join(folder, "1.png"), os.path.join(folder, "2.png"))
    os.remove(os.path.join(folder, "3.png"))
    os.symlink("nowhere.png", os.path.join(folder, "3.png"))


by_command("v7.tar", ["short/1", "b/2"], ["--format=v7"])
by_command("ustar.tar", [LONG[:131] + "/1", "b/2"], ["--format=ustar"])
by_command("gnu.tar", [LONG + "/1", "b/\u00fc\n2"], ["--format=gnu"])
by_command("posix.tar", [LONG + "/1", "b/\u00fc\n2"], ["--format=posix", "--pax-option=delete=atime,delete=ctime"])
by_command("sparse-gnu.tar", ["1", "2", "3"], ["--format=gnu", "-S"], sparse)
by_command("sparse-posix.tar", ["1", "2", "3"], ["--format=posix", "-S"], sparse)
by_command("links.tar", ["1", "2", "3", "4"], ["--format=gnu"], links)
by_python("python-gnu.tar", [LONG + "/1", "b/\u00fc\n2"], tarfile.GNU_FORMAT)
by_python("python-pax.tar", [LONG + "/1", "b/\u00fc\n2"], tarfile.PAX_FORMAT)
