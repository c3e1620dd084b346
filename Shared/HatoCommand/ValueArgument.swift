public import ArgumentParser
public import HatoModel

/// A JSON value as an argument; `-` reads it from stdin, `@FILE` from a file.
public enum ValueArgument {
    /// The value of an argument.
    ///
    /// - Parameter name: what the value is, for errors: an option, or words.
    /// - Throws: `CommandFailure`.
    public static func value(_ argument: String, _ name: String = "the value") throws(CommandFailure) -> JSONValue {
        let bytes: [UInt8]
        if argument == "-" {
            bytes = try CommandInput.bytes(of: argument, as: name)
        } else if argument.hasPrefix("@") {
            bytes = try CommandInput.bytes(of: String(argument.dropFirst()))
        } else {
            bytes = Array(argument.utf8)
        }
        do { return try JSONParser.parse(bytes) } catch {
            throw CommandFailure(.usage, "\(name) is not valid JSON: \(error); a text needs quotes, e.g. '\"hello\"'")
        }
    }

    /// The object of an argument. Throws `CommandFailure`.
    public static func object(_ argument: String) throws(CommandFailure) -> JSONObject {
        guard let object = try value(argument).object else {
            throw CommandFailure(.usage, "values are a JSON object, e.g. '{\"title\":\"hello\"}'")
        }
        return object
    }

    /// The help of such an argument.
    public static let help = ArgumentHelp(
        "The value, as JSON; - reads it from stdin, @FILE from a file.", valueName: "json")
}
