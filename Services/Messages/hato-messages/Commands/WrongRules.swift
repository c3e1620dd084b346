import HatoCommand
import HatoModel
import HatoRules

extension CommandFailure {
    /// Wrong rules, reported in the form of compilers: a line each, `FILE:line:column: message`, which editors can
    /// open.
    init(wrongRulesIn file: String, _ problems: [RulesProblem]) {
        let name = file == "-" ? "stdin" : file
        let lines = ["the rules are wrong:"] + problems.map { "\(name):\($0)" }
        self.init(.refused, lines.joined(separator: "\n"))
    }

    /// A server's error after rules were sent; its positions in them are reported with the file's name.
    init(_ error: RPCError, ofRulesIn file: String) {
        let problems = (error.data["problems"]?.array ?? []).compactMap { RulesProblem(json: $0) }
        guard !problems.isEmpty else {
            self.init(error)
            return
        }
        self.init(wrongRulesIn: file, problems)
        self.error = error
    }
}

extension RulesProblem {
    /// In the form of the errors of `messages.rules.set`; nil for any other error.
    fileprivate init?(json value: JSONValue) {
        guard let line = value["line"]?.number.flatMap({ Int(exactly: $0) }),
            let column = value["column"]?.number.flatMap({ Int(exactly: $0) }), let message = value["message"]?.string
        else { return nil }
        self.init(line: line, column: column, message: message)
    }
}
