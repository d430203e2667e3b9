"""A schema registry on loopback for tests: what of Confluent's protocol clients use. Kept in memory, in a thread."""
import base64
import http.server
import json
import re
import socketserver
import threading


class Registry:
    """hits: (method, path) of every request. password: who asks must be clink with it. down: no request is answered."""

    def __init__(self, password=None):
        self.schemas, self.subjects, self.serialized, self.hits = {}, {}, {}, []
        self.password, self.broken = password, 0
        self.lock = threading.Lock()
        self.server = None

    def start(self, port=0):
        registry = self

        class Handler(http.server.BaseHTTPRequestHandler):

            def answer(self, status, value):
                body = json.dumps(value).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def handle_any(self):
                n = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(n)
                with registry.lock:
                    status, value = registry.answer(self.command, self.path, self.headers, body)
                self.answer(status, value)

            do_GET = do_POST = do_PUT = handle_any

            def log_message(self, *args):
                pass

        class Server(socketserver.ThreadingMixIn, http.server.HTTPServer):
            daemon_threads = True
            allow_reuse_address = True

        self.server = Server(("127.0.0.1", port), Handler)
        self.port = self.server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def stop(self):
        if self.server:
            self.server.shutdown()
            self.server.server_close()
            self.server = None

    def __enter__(self):
        return self.start()

    def __exit__(self, *_):
        self.stop()

    def add(self, subject, text, kind="AVRO", references=(), serialized=None):
        """The schema's number, the same for the same schema. serialized: of protobuf, a descriptor in base64."""
        text = text if isinstance(text, str) else json.dumps(text)
        value = {"schema": text, "schemaType": kind}
        if references:
            value["references"] = list(references)
        number = next((i for i, v in self.schemas.items() if v == value), None) or len(self.schemas) + 1
        self.schemas[number] = value
        if serialized:
            self.serialized[number] = serialized
        versions = self.subjects.setdefault(subject, [])
        if number not in versions:
            versions.append(number)
        return number

    def count(self, path):
        return sum(p.split("?")[0] == path for _, p in self.hits)

    def shown(self, number, path):
        value = dict(self.schemas[number])
        if "format=serialized" in path and number in self.serialized:
            value["schema"] = self.serialized[number]
        if value["schemaType"] == "AVRO":
            del value["schemaType"]  # as the real one has it
        return value

    def answer(self, method, path, headers, body):
        self.hits.append((method, path))
        if self.broken:
            self.broken -= 1
            return 500, {"error_code": 50001, "message": "Error in the backend data store"}
        if self.password is not None:
            want = "Basic " + base64.b64encode(f"clink:{self.password}".encode()).decode()
            if headers.get("Authorization") != want:
                return 401, {"error_code": 401, "message": "Unauthorized"}
        plain = path.split("?")[0]
        if m := re.fullmatch(r"/schemas/ids/(\d+)", plain):
            n = int(m[1])
            return (200, self.shown(n, path)) if n in self.schemas else (404, {"error_code": 40403, "message": f"Schema {n} not found"})
        if m := re.fullmatch(r"/subjects/([^/]+)/versions/(latest|\d+)", plain):
            versions = self.subjects.get(m[1])
            if not versions:
                return 404, {"error_code": 40401, "message": f"Subject '{m[1]}' not found."}
            at = len(versions) if m[2] == "latest" else int(m[2])
            if not 1 <= at <= len(versions):
                return 404, {"error_code": 40402, "message": "Version not found"}
            return 200, {"subject": m[1], "version": at, "id": versions[at - 1], **self.shown(versions[at - 1], path)}
        if method == "POST" and (m := re.fullmatch(r"/subjects/([^/]+)(/versions)?", plain)):
            asked = json.loads(body)
            number = self.add(m[1], asked["schema"], asked.get("schemaType", "AVRO"), asked.get("references", ()))
            return 200, {"id": number, "subject": m[1], "version": self.subjects[m[1]].index(number) + 1, **self.shown(number, path)}
        return 404, {"error_code": 404, "message": "HTTP 404 Not Found"}
