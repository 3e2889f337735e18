"""The server that all of them record: python3 serve.py PORT."""
import gzip, http.server, sys

class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def answer(self, body, status=200, **headers):
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        path = self.path.split("?")[0]
        if path == "/":
            self.answer(b"<html><body>page</body></html>", Content_Type="text/html")
        elif path == "/json":
            self.answer('{"hello": "wörld", "list": [1, 2]}'.encode(), Content_Type="application/json", Set_Cookie="session=Zq8kP2mV5xW1; Path=/")
        elif path == "/zipped":
            self.answer(gzip.compress(b"packed " * 40, mtime=0), Content_Type="text/plain", Content_Encoding="gzip")
        elif path == "/binary":
            self.answer(bytes(range(256)), Content_Type="application/octet-stream")
        elif path == "/lines":
            self.answer(b"one\n  two: 'x'\n\n\nthree \r\n", Content_Type="text/plain")
        elif path == "/empty":
            self.answer(b"", 204)
        else:
            self.answer(b"no", 404, Content_Type="text/plain")

    def do_POST(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.answer(b"got " + body, 201, Content_Type="application/octet-stream")

http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Handler).serve_forever()
