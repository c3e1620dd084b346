// Starts a temporary stack and returns clients for it, for test suites of users and our own.
//
// ```swift
// try await TestStack.run { stack in
//     let masuo = try await stack.newUser()
//     let messages = stack.client(.messages, as: .user(idToken: masuo.idToken))
//     let pushed = try await messages.call(Messages.Push(path: path, value: ["text": "ただいま"]))
// }
// ```
