import HatoModel
import Testing

@testable import HatoFirebase

@Suite struct RESTRequestTests {
    private typealias Samples = RESTSamples

    // MARK: Paths

    @Test(
        arguments: [
            ("/.json", "/"), ("/a.json", "/a"), ("/a/b.json", "/a/b"), ("/a/b/.json", "/a/b"),
            ("//a///b//.json", "/a/b"),
            ("/a%20b/%E3%81%82.json", "/a b/あ"), ("/a+b.json", "/a+b"), ("/あ.json", "/あ"), ("/%25.json", "/%"),
            ("/a/.priority.json", "/a/.priority"), ("/.priority/.json", "/.priority"), ("/a%3Ab@c.json", "/a:b@c"),
            ("/a.json?", "/a"), ("/a.json?x", "/a"), ("http://db.example.com/a.json", "/a"),
            ("HTTPS://db.example.com:443/a.json?x=1", "/a"), ("/\(String(repeating: "k", count: 768)).json", nil),
            ("/" + Array(repeating: "k", count: 32).joined(separator: "/") + ".json", nil),
        ] as [(String, String?)])
    func pathIsDecoded(target: String, path: String?) throws {
        let request = try Samples.request("GET", target)
        if let path { #expect(request.target == .node(try TreePath(path))) }
    }

    @Test(arguments: [
        "/a", "/", "", "/a.json/b", "/a%2Ejson", "/a.jso", "/a.JSON", "/.wellknown", "*", "/a?x=.json", "http://h",
    ])
    func pathWithoutSuffixIsNotFound(target: String) {
        let error = Samples.error("GET", target)
        #expect(error == RESTErrors.noSuffix)
        let answer = RESTErrors.noSuffix.response()
        #expect(answer.status == 404)
        #expect(answer.text == "append .json to your request URI to use the REST API.")
        #expect(answer.header("content-type") == "text/plain; charset=utf-8")
    }

    @Test(arguments: [
        "/a%2Fb.json", "/a%2eb.json", "/a.b.json", "/a.json/b.json", "/a%23.json", "/a#b.json", "/$a.json",
        "/a[0].json",
        "/a%00b.json", "/%0A.json", "/a%7F.json", "/%.json", "/%4.json", "/%zz.json", "/%FF.json", "/%C3%28.json",
        "/%ED%A0%80.json", "/a\u{FFFD}.json", "/.info/connected.json", "/.value.json", "/.sv.json", "/..json",
        "/../a.json", "/.priority/a.json", "/a/.priority/.priority.json", "a.json", ".json", "/%2e%2e/a.json",
        "/\(String(repeating: "k", count: 769)).json", "/\(String(repeating: "k", count: 1_000)).json",
    ])
    func pathWithAWrongKeyIsRefused(target: String) {
        #expect(Samples.error("GET", target) == RESTError(400, "Invalid path: Invalid token in path"))
    }

    @Test func pathThatIsTooDeepIsRefused() {
        let path = "/" + Array(repeating: "k", count: 33).joined(separator: "/")
        #expect(Samples.error("GET", "\(path).json") == RESTErrors.pathTooDeep)
        #expect(Samples.error("GET", "\(path)/.priority.json") == RESTErrors.pathTooDeep)
        let deepest = "/" + Array(repeating: "k", count: 32).joined(separator: "/")
        #expect(Samples.error("POST", "\(deepest).json", body: "1") == RESTErrors.pathTooDeep)
        #expect(Samples.error("PUT", "\(deepest).json", body: "1") == nil)
    }

    @Test func settingsAreNoNodes() throws {
        #expect(try Samples.request("GET", "/.settings/rules.json").target == .rules)
        #expect(try Samples.request("GET", "/.settings/rules/.json").target == .rules)
        #expect(try Samples.request("GET", "/.inspect/coverage.json?ns=x").target == .coverage)
        for target in ["/.settings.json", "/.settings/other.json", "/.settings/rules/x.json", "/.inspect.json"] {
            #expect(Samples.error("GET", target) == RESTError(404, "404 Not Found"))
        }
    }

    // MARK: Methods

    @Test func methodsAreKnown() throws {
        for method in ["GET", "HEAD", "PUT", "POST", "PATCH", "DELETE"] {
            #expect(try Samples.request(method, "/a.json").method.rawValue == method)
        }
        for method in ["TRACE", "get", "OPTIONS", "PROPFIND", "", "GET "] {
            let error = Samples.error(method, "/a.json")
            #expect(error?.status == 405)
            #expect(error?.response().header("allow") == "GET, HEAD, PUT, POST, PATCH, DELETE, OPTIONS")
        }
        for method in ["POST", "PATCH", "DELETE"] {
            #expect(Samples.error(method, "/.settings/rules.json", body: "{}")?.status == 405)
            #expect(Samples.error(method, "/.inspect/coverage.json", body: "{}")?.status == 405)
        }
    }

    @Test func methodOfAPostIsOverridden() throws {
        for (value, method) in [("PUT", RESTRequest.Method.put), ("patch", .patch), (" Delete ", .delete)] {
            #expect(try Samples.request("POST", "/a.json", [("x-http-method-override", value)]).method == method)
        }
        #expect(try Samples.request("POST", "/a.json?x-http-method-override=DELETE").method == .delete)
        #expect(try Samples.request("GET", "/a.json", [("X-HTTP-Method-Override", "DELETE")]).method == .get)
        #expect(try Samples.request("PUT", "/a.json", [("X-HTTP-Method-Override", "DELETE")]).method == .put)
        for value in ["GET", "TRACE", ""] {
            #expect(Samples.error("POST", "/a.json", [("X-HTTP-Method-Override", value)])?.status == 405)
        }
    }

    // MARK: Namespaces

    @Test(
        arguments: [
            (nil, nil, "default"), ("", nil, "default"), ("hato", nil, "default"), ("HATO", nil, "default"),
            ("hato-default-rtdb", nil, "default"), ("old", nil, "default"), ("tests", nil, "qa"), ("Tests", nil, "qa"),
            ("other", nil, "other"), (nil, "127.0.0.1:9000", "default"), (nil, "chat.example.com", "default"),
            (nil, "other.db.example.com", "other"), (nil, "OTHER.DB.example.com:443", "other"),
            (nil, "hato-default-rtdb.db.example.com", "default"), (nil, "db.example.com", "default"),
            (nil, "a.b.db.example.com", "default"), (nil, "otherdb.example.com", "default"),
            ("one", "two.db.example.com", "one"), ("a_b", nil, nil), ("a/b", nil, nil), ("a\u{0}", nil, nil),
            (String(repeating: "n", count: 64), nil, nil), ("データ", nil, nil),
        ] as [(String?, String?, String?)])
    func namespaceIsADatabase(namespace: String?, host: String?, database: String?) {
        #expect(Samples.namespaces.database(namespace: namespace, host: host)?.rawValue == database)
    }

    @Test func unknownNamespaceIsNotFound() throws {
        #expect(Samples.error("GET", "/a.json?ns=a_b") == RESTError(404, "404 Not Found"))
        #expect(try Samples.request("GET", "/a.json?ns=Other").database.rawValue == "other")
        #expect(try Samples.request("GET", "/a.json", [("Host", "x.db.example.com")]).database.rawValue == "x")
    }

    // MARK: Credentials

    @Test func credentialComesFromParametersAndHeader() throws {
        #expect(try Samples.request("GET", "/a.json").credential == nil)
        #expect(try Samples.request("GET", "/a.json?auth=t%2Bk.e").credential == "t+k.e")
        #expect(try Samples.request("GET", "/a.json?access_token=owner").credential == "owner")
        #expect(try Samples.request("GET", "/a.json", [("authorization", "bearer  owner ")]).credential == "owner")
        #expect(try Samples.request("GET", "/a.json?auth=p", [("Authorization", "Bearer h")]).credential == "p")
        #expect(try Samples.request("GET", "/a.json?auth=", [("Authorization", "Bearer h")]).credential == "h")
        #expect(try Samples.request("GET", "/a.json", [("Authorization", "Basic eDp5")]).credential == nil)
        #expect(try Samples.request("GET", "/a.json", [("Authorization", "Bearer ")]).credential == nil)
        #expect(try Samples.request("GET", "/a.json", [("Authorization", "Bearer")]).credential == nil)
    }

    @Test func overrideIsJSON() throws {
        let target = "/a.json?auth=k&auth_variable_override="
        #expect(try Samples.request("GET", target + "null").override == .signedOut)
        let request = try Samples.request(
            "GET", target + "%7B%22uid%22%3A%20%22a%0Ab%22%7D".replacing("%0A", with: "%5Cn"))
        #expect(request.override == .variable(Array(#"{"uid":"a\nb"}"#.utf8)))
        #expect(String(decoding: request.override?.json ?? [], as: UTF8.self) == #"{"variable":{"uid":"a\nb"}}"#)
        for wrong in [
            "", "1", "%22x%22", "%5B%5D", "%7B", "%7B%22a%22:1,%22a%22:2%7D",
            String(repeating: "%7B%22a%22:", count: 40),
        ] {
            #expect(
                Samples.error("GET", target + wrong)
                    == RESTError(400, "auth_variable_override must be a JSON object or null"), "\(wrong)")
        }
    }

    // MARK: Parameters

    @Test(arguments: [
        ("print=x", "print must be pretty or silent"), ("print=", "print must be pretty or silent"),
        ("shallow=1", "shallow must be true or false"), ("format=json", "format must be export or strict"),
        ("timeout=3", "timeout must be a number of ms, s or min, e.g. 3s"),
        ("timeout=s", "timeout must be a number of ms, s or min, e.g. 3s"),
        ("timeout=-3s", "timeout must be a number of ms, s or min, e.g. 3s"),
        ("timeout=0s", "timeout must be a number of ms, s or min, e.g. 3s"),
        ("timeout=3h", "timeout must be a number of ms, s or min, e.g. 3s"),
        ("timeout=1.5s", "timeout must be a number of ms, s or min, e.g. 3s"),
        ("timeout=16min", "timeout must be at most 15min"), ("timeout=901s", "timeout must be at most 15min"),
        ("timeout=99999999999999999999min", "timeout must be at most 15min"),
        ("writeSizeLimit=huge", "writeSizeLimit must be tiny, small, medium, large or unlimited"),
        ("callback=", "callback must be the name of a function, e.g. app.received"),
        ("callback=a(b)", "callback must be the name of a function, e.g. app.received"),
        ("callback=a..b", "callback must be the name of a function, e.g. app.received"),
        ("callback=1a", "callback must be the name of a function, e.g. app.received"),
        ("callback=a%0Ab", "callback must be the name of a function, e.g. app.received"),
        ("callback=%3Cscript%3E", "callback must be the name of a function, e.g. app.received"),
        (
            "callback=\(String(repeating: "f", count: 129))",
            "callback must be the name of a function, e.g. app.received"
        ),
        ("orderBy=%zz", "orderBy must be percent-encoded UTF-8"), ("auth=%FF", "auth must be percent-encoded UTF-8"),
        ("auth=a&auth=b", "auth must be specified only once"),
        ("print=pretty&print=silent", "print must be specified only once"),
        ("orderBy=%22a%22&orderBy=%22b%22", "orderBy must be specified only once"),
        ("auth=%C3%A9&auth=e%CC%81", "auth must be specified only once"),
    ])
    func wrongParameterIsNamed(query: String, text: String) {
        #expect(Samples.error("GET", "/a.json?\(query)") == RESTError(400, text))
    }

    @Test(arguments: [
        "print=pretty", "print=silent", "shallow=true", "shallow=false", "format=export", "timeout=3s", "timeout=15min",
        "timeout=1ms", "writeSizeLimit=tiny", "writeSizeLimit=unlimited", "callback=a", "callback=$_9.b_.c$",
        "callback=jQuery123_456", "disableTriggers=true", "ac=x", "_=1", "%zz=1", "x=%zz", "&&=&", "ns=hato&ns=hato",
        "auth=a&auth=a", "download=a.json", "download=",
    ])
    func rightParametersAndUnknownOnesAreTaken(query: String) {
        #expect(Samples.error("GET", "/a.json?\(query)") == nil)
    }

    @Test func timeoutIsOfReads() throws {
        #expect(try Samples.request("GET", "/a.json?timeout=3s").timeoutMs == 3_000)
        #expect(try Samples.request("GET", "/a.json?timeout=500ms").timeoutMs == 500)
        #expect(try Samples.request("GET", "/a.json?timeout=2min").timeoutMs == 120_000)
        #expect(try Samples.request("GET", "/a.json").timeoutMs == nil)
        #expect(try Samples.request("PUT", "/a.json?timeout=3s").timeoutMs == nil)
        #expect(RESTErrors.timedOut.status == 400)
    }

    @Test func plusIsABlankInTheQuery() throws {
        let request = try Samples.request("GET", "/a.json?orderBy=%22a+b%22&equalTo=%22c%2Bd%22")
        #expect(request.query?.json == ["orderBy": "a b", "equalTo": "c+d"])
    }

    // MARK: Combinations

    private static let mixed =
        "Mixing 'shallow', querying parameters or 'print=silent' and if-match or if-none-match requests "
        + "is not supported"

    @Test(arguments: [
        ("GET", "shallow=true&limitToLast=1", "", "Mixing 'shallow' and querying parameters is not supported"),
        ("GET", "shallow=true&startAfter=k", "", "Mixing 'shallow' and querying parameters is not supported"),
        (
            "GET", "shallow=true&limitToFirst=1&orderBy=%22$key%22", "",
            "Mixing 'shallow' and querying parameters is not supported"
        ),
        ("GET", "shallow=true&limitToFirst=x", "", "limitToFirst must be an integer"),
        ("GET", "limitToFirst=1", "", "orderBy must be defined when other query parameters are defined"),
        ("GET", "shallow=true&format=export", "", "Mixing 'shallow' and 'format=export' is not supported"),
        ("GET", "shallow=true", "x-firebase-etag", "Mixing 'shallow' and etag requests is not supported"),
        (
            "GET", "orderBy=%22$key%22", "x-firebase-etag",
            "Mixing querying parameters and ETag requests is not supported"
        ),
        ("GET", "orderBy=%22$key%22", "if-none-match", mixed),
        ("PUT", "print=silent", "if-match", mixed),
        ("GET", "print=silent", "if-none-match", mixed),
        ("PATCH", "", "if-match", "if-match is only supported by PUT and DELETE"),
        ("POST", "", "if-match", "if-match is only supported by PUT and DELETE"),
        ("GET", "", "if-match", "if-match is only supported by PUT and DELETE"),
        ("PUT", "", "if-none-match", "if-none-match is only supported by GET"),
        ("DELETE", "orderBy=%22$key%22&limitToFirst=1", "", "Querying parameters are only supported by GET"),
        ("PUT", "callback=f", "", "callback is only supported by GET"),
        ("GET", "shallow=true", "accept", "shallow is not supported by event streams"),
    ])
    func whatCannotStandTogetherIsRefused(method: String, query: String, header: String, text: String) {
        let values = ["x-firebase-etag": "true", "accept": "text/event-stream"]
        let headers = header.isEmpty ? [] : [(name: header, value: values[header] ?? "null_etag")]
        #expect(Samples.error(method, "/a.json?\(query)", headers, body: "{}") == RESTError(400, text))
    }

    @Test func priorityHasNoChildren() throws {
        for (method, query) in [("GET", "?orderBy=%22$key%22"), ("POST", ""), ("PATCH", "")] {
            #expect(Samples.error(method, "/a/.priority.json\(query)", body: "{}") == RESTErrors.invalidPath)
        }
        #expect(Samples.error("GET", "/a/.priority.json", [("Accept", "text/event-stream")]) == RESTErrors.invalidPath)
        #expect(Samples.error("PUT", "/a/.priority.json", body: "1") == nil)
        #expect(Samples.error("GET", "/a/.priority.json") == nil)
    }

    @Test func streamIsAGetThatAcceptsEvents() throws {
        for accept in ["text/event-stream", "TEXT/EVENT-STREAM; q=1", "application/json, text/event-stream;q=0.5"] {
            #expect(try Samples.request("GET", "/a.json", [("Accept", accept)]).isStream)
        }
        for accept in ["*/*", "text/*", "text/event-streams", ""] {
            #expect(try !Samples.request("GET", "/a.json", [("Accept", accept)]).isStream)
        }
        #expect(try !Samples.request("PUT", "/a.json", [("Accept", "text/event-stream")]).isStream)
        #expect(try !Samples.request("HEAD", "/a.json", [("Accept", "text/event-stream")]).isStream)
        #expect(try !Samples.request("GET", "/.settings/rules.json", [("Accept", "text/event-stream")]).isStream)
    }
}
