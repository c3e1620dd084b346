/// Why the evaluation of a rule was aborted; the rule then counts as false (spec §9.2).
struct RulesFailure: Error {
    enum Reason: Equatable {
        case receiverIsNoString
        case argumentIsNoString
        case notComparable
        case notAddable
        case notANumber
        case notAValue
        case parentOfRoot
        case relativePath
        case textTooLong
        case tooManySteps(max: Int)
        case tooManyStepsOfOperation(max: Int)
        /// The data could not be read; the evaluation holds the error.
        case data
    }

    var reason: Reason
    var span: RulesSpan

    var message: String {
        switch reason {
        case .receiverIsNoString: "Only a string has this method or property; the value is something else."
        case .argumentIsNoString: "The argument is not a string."
        case .notComparable: "Only two numbers or two strings have an order."
        case .notAddable: "Only numbers and strings can be added."
        case .notANumber: "The operand is not a number."
        case .notAValue: "A snapshot is no value."
        case .parentOfRoot: "The root has no parent."
        case .relativePath: "A path must not contain '.' or '..'."
        case .textTooLong: "The text is longer than \(RulesLimits.textBytesMax) bytes."
        case .tooManySteps(let max): "The rule takes more than \(max) steps."
        case .tooManyStepsOfOperation(let max): "The rules of this operation take more than \(max) steps."
        case .data: "The data could not be read."
        }
    }
}
