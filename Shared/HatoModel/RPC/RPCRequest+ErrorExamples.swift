extension RPCRequest {
    /// Adds a hint to an error about a parameter of this method, unless the error has one: for a declared parameter,
    /// its value in an example; for an undeclared one, the declared names. Returns any other error unchanged.
    public static func showingWhatIsRight(_ error: any Error) -> any Error {
        guard let error = (error as? any RPCErrorConvertible)?.rpcError,
            error.code == .invalidParams || error.code == .invalidArgument, !error.message.contains("e.g. "),
            let parameter = error.data["parameter"]?.string
        else { return error }
        var shown = error
        let example = example.request.members
        let name = String(parameter.prefix { $0 != "." })
        guard !chosenSecrets.contains(name) else { return error }
        if let value = fields.list.first(where: { $0.name == name })?.example ?? example[name] {
            shown.message += ", e.g. \(value.text)"
        } else if error.reason == "unknown_parameter" {
            if !error.message.contains("; known are ") {
                let names = fields.list.map(\.name).sorted()
                shown.message += names.isEmpty ? "; there are none" : "; known are \(names.joined(separator: ", "))"
            }
            shown.message += ", e.g. \(JSONValue.object(example).text)"
        }
        return shown
    }
}

/// Values that people choose: a password in an error message could be mistaken for one's own.
private let chosenSecrets: Set<String> = ["password", "newPassword", "secret"]

extension JSONValue {
    fileprivate var text: String {
        var writer = JSONWriter()
        writer.write(self)
        return String(decoding: writer.bytes, as: UTF8.self)
    }
}
