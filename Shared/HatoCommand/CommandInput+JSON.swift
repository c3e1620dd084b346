public import HatoModel

extension CommandInput {
    /// The JSON value in a file; `-` is stdin.
    ///
    /// - Parameter reader: what is read, for errors: an option, or words.
    /// - Throws: `CommandFailure` that names the file.
    public static func json(of file: String, as reader: String = "the file") throws(CommandFailure) -> JSONValue {
        let bytes = try bytes(of: file, as: reader)
        do { return try JSONParser.parse(bytes) } catch {
            throw CommandFailure(.usage, "\(name(of: file)) is not valid JSON: \(error)")
        }
    }

    /// The request whose params a file has as a JSON object; `-` is stdin.
    ///
    /// - Throws: `CommandFailure` that names the file, and the parameter that is wrong.
    public static func request<Request: RPCRequest>(
        _ type: Request.Type, of file: String
    ) throws(CommandFailure) -> Request {
        guard let params = try json(of: file).object else {
            let example = String(decoding: type.example.request.json.encoded, as: UTF8.self)
            throw CommandFailure(.usage, "\(name(of: file)) holds no JSON object, e.g. \(example)")
        }
        do { return try type.decode(params) } catch {
            throw CommandFailure.wrongRequest(type, error) { _ in name(of: file) }
        }
    }

    private static func name(of file: String) -> String { file == "-" ? "stdin" : "'\(file)'" }
}

extension CommandFailure {
    /// The failure for a request that cannot be decoded: the message with what would be right.
    ///
    /// - Parameter source: the option or file that a parameter comes from; nil: unknown.
    static func wrongRequest<Request: RPCRequest>(
        _ type: Request.Type, _ error: RPCError, source: (_ parameter: String) -> String?
    ) -> CommandFailure {
        let shown = (type.showingWhatIsRight(error) as? RPCError) ?? error
        let source = error.data["parameter"]?.string.flatMap(source)
        return CommandFailure(.usage, (source.map { "\($0): " } ?? "") + shown.message)
    }
}
