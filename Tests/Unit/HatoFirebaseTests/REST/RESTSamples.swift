import HatoModel

@testable import HatoFirebase

/// Requests of these tests.
enum RESTSamples {
    static let namespaces = NamespaceTable(
        project: "hato", databases: ["old": .default, "tests": DatabaseName(rawValue: "qa") ?? .default],
        domain: "db.example.com")

    static func head(
        _ method: String, _ target: String, _ headers: [(name: String, value: String)] = []
    ) -> RESTHead {
        RESTHead(method: method, target: target, headers: headers)
    }

    static func request(
        _ method: String, _ target: String, _ headers: [(name: String, value: String)] = []
    ) throws(RESTError) -> RESTRequest {
        try RESTRequest(head(method, target, headers), namespaces)
    }

    /// The error of a request, or of its body; nil when it has none.
    static func error(
        _ method: String, _ target: String, _ headers: [(name: String, value: String)] = [], body: String = ""
    ) -> RESTError? {
        do {
            let request = try request(method, target, headers)
            _ = try request.start(Array(body.utf8), as: request.identity())
            return nil
        } catch { return error }
    }

    /// The call that a request becomes.
    static func operation(
        _ method: String, _ target: String, _ headers: [(name: String, value: String)] = [], body: String = ""
    ) throws -> RESTOperation {
        let request = try request(method, target, headers)
        switch try request.start(Array(body.utf8), as: request.identity()) {
        case .call(let operation): return operation
        case .answer(let answer): throw UnexpectedAnswer(status: answer.status)
        }
    }

    struct UnexpectedAnswer: Error { let status: Int }

    /// A call as text: `messages.get {"path":"/a"}`.
    static func call(
        _ method: String, _ target: String, _ headers: [(name: String, value: String)] = [], body: String = ""
    ) -> String {
        do {
            let operation = try operation(method, target, headers, body: body)
            return "\(operation.method) \(String(decoding: operation.params, as: UTF8.self))"
        } catch { return "\(error)" }
    }

    /// The response of a request whose call has this result.
    static func response(
        _ method: String, _ target: String, _ headers: [(name: String, value: String)] = [], body: String = "",
        result: String
    ) throws -> RESTAnswer {
        let request = try request(method, target, headers)
        let operation = try operation(method, target, headers, body: body)
        switch request.step(after: operation, result: Array(result.utf8)) {
        case .answer(let answer): return answer
        case .call, .again: throw UnexpectedAnswer(status: 0)
        }
    }
}

extension RESTAnswer {
    var text: String { String(decoding: body, as: UTF8.self) }
}

extension RESTOperation {
    var text: String { String(decoding: params, as: UTF8.self) }
}
