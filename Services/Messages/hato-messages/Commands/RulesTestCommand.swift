import ArgumentParser
import Foundation
import HatoCommand
import HatoModel
import HatoRules

/// `hato-messages rules test FILE`: evaluates rules for a table of cases, without any service, and reports the rules
/// that are never true, never false, or never reached in the table.
struct RulesTestCommand: AsyncParsableCommand {
    static let configuration = CommandConfiguration(
        commandName: "test", abstract: "Evaluates rules for a table of cases and compares the results.",
        discussion: """
            The file is JSON: {"rules": FILE, "data": tree, "now": ms, "users": {name: {"uid", "token"}}, "cases": \
            [{"name", "operation": "get|listen|set|update|push|remove", "path", "value", "query", "as", "data", \
            "allowed"}]}. Exits with 1 when a result differs, or with --coverage when a rule was not seen both true \
            and false.
            """)

    @Argument(help: "The file with the cases.") var file: String
    @Option(help: "The rules, instead of the file that the cases name.") var rules: String?
    @Flag(help: "Also fail when a rule was never true or never false.") var coverage = false
    @Flag(help: "Print JSON, also on a terminal.") var json = false

    func run() async throws {
        let output = CommandOutput.standard(json: json)
        try await CommandSession.reporting(MessagesTarget.self, output) {
            let cases = try self.cases()
            let report = try cases.run(over: try compiled(cases))
            if output.isForPeople {
                try output.show(text: RulesReportPage(report: report).text)
            } else {
                try output.show(RulesReportPage(report: report).json)
            }
            let isCovered = report.coverage.entries.allSatisfy(\.isCovered)
            if !report.failures.isEmpty || coverage && !isCovered { throw ExitCode(1) }
        }
    }

    private func cases() throws -> RulesCases {
        let json = try JSONParser.parse(CommandInput.bytes(of: file, as: "the cases"))
        guard json.object != nil else {
            throw CommandFailure(.usage, "'\(file)' holds no JSON object with cases")
        }
        do { return try RulesCases(json: json, unknown: .rejected) } catch {
            throw CommandFailure(.usage, "'\(file)': \(error.message)")
        }
    }

    private func compiled(_ cases: RulesCases) throws -> Rules {
        guard let name = rules ?? cases.rules.map({ beside($0) }) else {
            throw CommandFailure(.usage, "the cases name no rules; say --rules FILE")
        }
        let text = String(decoding: try CommandInput.bytes(of: name, as: "--rules"), as: UTF8.self)
        do { return try Rules.compile(text) } catch { throw CommandFailure(wrongRulesIn: name, error.problems) }
    }

    /// A file named in the file of the cases, relative to the working folder.
    private func beside(_ name: String) -> String {
        if name.hasPrefix("/") || file == "-" { return name }
        return URL(filePath: file).deletingLastPathComponent().appending(path: name).path(percentEncoded: false)
    }
}

/// The printed report.
struct RulesReportPage {
    let report: RulesCasesReport

    private var entries: [RulesCoverage.Entry] { report.coverage.entries }

    /// The groups of rules that the table does not cover with both results.
    private var gaps: [(name: String, title: String, entries: [RulesCoverage.Entry])] {
        [
            ("neverReached", "never reached", entries.filter { !$0.isReached }),
            ("neverTrue", "never true", entries.filter(\.lacksTrue)),
            ("neverFalse", "never false", entries.filter(\.lacksFalse)),
        ]
    }

    var text: String {
        var lines: [String] = []
        for failure in report.failures {
            let (wanted, found) = failure.expected ? ("allowed", "denied") : ("denied", "allowed")
            lines.append("case \(failure.index + 1), \(failure.name): should be \(wanted), was \(found)")
            for step in failure.trace {
                let rule = entries[step.rule].rule
                var line = "    \(step.path) \(rule.kind.rawValue): \(step.result)"
                if let failed = step.failed { line += "  \(failed.line):\(failed.column) \(failed.text)" }
                if let error = step.error { line += "  (\(error))" }
                lines.append(line)
            }
        }
        lines.append("\(report.count) cases, \(report.count - report.failures.count) as expected")
        let seen = entries.filter(\.isCovered)
        lines.append("\(entries.count) rules, \(seen.count) seen both true and false")
        for gap in gaps {
            for entry in gap.entries {
                lines.append(
                    "    \(gap.title): \(entry.line):\(entry.column) \(entry.rule.pattern) \(entry.rule.kind.rawValue)")
            }
        }
        return lines.joined(separator: "\n") + "\n"
    }

    var json: JSONValue {
        var coverage: JSONObject = ["rules": .number(Double(entries.count))]
        for gap in gaps { coverage[gap.name] = .array(gap.entries.map(position)) }
        return [
            "cases": .number(Double(report.count)),
            "failures": .array(report.failures.map(failure)),
            "coverage": .object(coverage),
        ]
    }

    private func position(_ entry: RulesCoverage.Entry) -> JSONValue {
        [
            "path": .string(entry.rule.pattern), "rule": .string(entry.rule.kind.rawValue),
            "line": .number(Double(entry.line)), "column": .number(Double(entry.column)),
        ]
    }

    private func failure(_ failure: RulesCasesReport.Failure) -> JSONValue {
        [
            "case": .number(Double(failure.index + 1)), "name": .string(failure.name),
            "expected": .bool(failure.expected),
            "trace": .array(
                failure.trace.map { step in
                    var object: JSONObject = [
                        "path": .string(step.path.text), "rule": .string(entries[step.rule].rule.kind.rawValue),
                        "result": .bool(step.result),
                    ]
                    if let error = step.error { object["error"] = .string(error) }
                    if let failed = step.failed {
                        object["failed"] = [
                            "expression": .string(failed.text), "line": .number(Double(failed.line)),
                            "column": .number(Double(failed.column)),
                        ]
                    }
                    return .object(object)
                }),
        ]
    }
}
