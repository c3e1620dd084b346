import HatoModel
import HatoRPC
import HatoTesting
import Synchronization
import Testing

/// Protocol §2: who is asking.
@Suite(.timeLimit(.minutes(10)))
struct IdentityTests {
    /// A peer that authenticates as two users in turn would else leave work of each listener behind for each line.
    @Test func nextRequestWaitsUntilListenersHaveTakenOverTheIdentity() async throws {
        let service = try await TestService()
        service.identityWork.change { $0 = [] }
        let peer = try await service.peer()
        _ = try await peer.call("session.authenticate", #"{"auth":"user-carl"}"#)
        for _ in 0..<3 { #expect(try await peer.call("check.listen")["result"] != nil) }
        let lines = ["anna", "bert", "carl"].map {
            #"{"jsonrpc":"2.0","id":"\#($0)","method":"session.authenticate","params":{"auth":"user-\#($0)"}}"# + "\n"
        }
        try await peer.send(lines.joined())
        for (number, name) in ["anna", "bert", "carl"].enumerated() {
            #expect(try await peer.response()["id"] == .string(name))
            try await eventually("the listeners are called") {
                service.identityChanges.current.count >= 3 * (number + 1)
            }
            #expect(service.identityChanges.current.count == 3 * (number + 1))
            service.identityWork.change { $0?.removeAll() }
        }
        #expect(try await peer.call("check.echo")["result"] != nil)
        await service.stop()
    }

    @Test func callSpeaksForItsOwnCredential() async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        #expect(try await peer.call("check.who")["result"] == ["admin": false])
        #expect(
            try await peer.call("check.who", #"{"auth":"user-anna"}"#)["result"] == ["uid": "anna", "admin": false])
        #expect(try await peer.call("check.who", #"{"auth":"admin"}"#)["result"] == ["admin": true])
        #expect(try await peer.call("check.who")["result"] == ["admin": false])
        await service.stop()
    }

    @Test func badCredentialIsAnErrorOfThatCall() async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        let bad = try await peer.call("check.echo", #"{"auth":"wrong"}"#)
        #expect(bad["error"]?["code"] == -32001)
        #expect(bad["error"]?["data"]?["reason"] == "INVALID_ID_TOKEN")
        for auth in ["1", "null", "{}"] {
            let response = try await peer.call("check.echo", "{\"auth\":\(auth)}")
            #expect(response["error"]?["code"] == -32602)
            #expect(response["error"]?["data"]?["parameter"] == "auth")
        }
        #expect(try await peer.call("check.echo")["result"] != nil)
        await service.stop()
    }

    @Test func administratorSpeaksAsAnotherUser() async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        let anna = try await peer.call("check.who", #"{"auth":"admin","as":{"uid":"anna","token":{"room":"x"}}}"#)
        #expect(anna["result"] == ["uid": "anna", "admin": false, "room": "x"])
        #expect(try await peer.call("check.who", #"{"auth":"admin","as":null}"#)["result"] == ["admin": false])
        for wrong in ["1", "{}", #"{"uid":1}"#, #"{"uid":"a","tokn":{}}"#, #"{"uid":"a","token":1}"#] {
            let response = try await peer.call("check.who", "{\"auth\":\"admin\",\"as\":\(wrong)}")
            #expect(response["error"]?["code"] == -32602)
            #expect(response["error"]?["data"]?["parameter"] == "as")
        }
        #expect(try await peer.call("check.who", #"{"auth":"user-anna","as":null}"#)["error"]?["code"] == -32002)
        #expect(try await peer.call("check.who", #"{"as":{"uid":"anna"}}"#)["error"]?["code"] == -32002)
        await service.stop()
    }

    @Test func administratorMayCallUnderTheRulesAsAVariable() async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        for (variable, uid) in [
            (#"{"uid":"anna","role":"guest"}"#, "anna"), ("{}", nil), (#"{"uid":5}"#, nil), (#"{"role":null}"#, nil),
        ] {
            let who = try await peer.call("check.who", "{\"auth\":\"admin\",\"as\":{\"variable\":\(variable)}}")[
                "result"]
            #expect(who?["uid"]?.string == uid && who?["admin"] == false, "\(variable)")
        }
        for wrong in ["5", "null", "[]", #""x""#, #"{},"uid":"anna""#, #"{},"token":{}"#] {
            let response = try await peer.call("check.who", "{\"auth\":\"admin\",\"as\":{\"variable\":\(wrong)}}")
            #expect(response["error"]?["code"] == -32602, "\(wrong)")
            #expect(response["error"]?["data"]?["parameter"] == "as")
        }
        let long = String(repeating: "x", count: 16 << 10)
        let tooLong = try await peer.call(
            "check.who", "{\"auth\":\"admin\",\"as\":{\"variable\":{\"a\":\"\(long)\"}}}")
        #expect(tooLong["error"]?["data"]?["parameter"] == "as")
        let token = try await peer.call(
            "check.who", "{\"auth\":\"admin\",\"as\":{\"uid\":\"anna\",\"token\":{\"a\":\"\(long)\"}}}")
        #expect(token["error"]?["data"]?["parameter"] == "as")
        #expect(token["error"]?["message"]?.string?.contains("at most 16384 bytes") == true)
        for credential in ["user-anna", "service", "gateway"] {
            let refused = try await peer.call("check.who", "{\"auth\":\"\(credential)\",\"as\":{\"variable\":{}}}")
            #expect(refused["error"]?["code"] == -32002, "\(credential)")
        }
        // It is no user, whatever it says.
        let asAnna = #""as":{"variable":{"uid":"anna","admin":true}}"#
        let signedIn = try await peer.call("check.signedIn", "{\"auth\":\"admin\",\"count\":1,\(asAnna)}")
        #expect(signedIn["error"]?["code"] == -32002)
        let session = try await peer.call("session.authenticate", "{\"auth\":\"admin\",\(asAnna)}")["result"]
        #expect(session == ["uid": "anna", "admin": false, "expiresAt": nil])
        #expect(try await peer.call("check.who")["result"]?["uid"] == "anna")
        #expect(try await peer.call("check.administration")["error"]?["code"] == -32002)
        #expect(try await peer.call("check.client")["result"]?["client"] == "address 127.0.0.1")
        #expect(try await peer.call("check.who", #"{"as":null}"#)["error"]?["code"] == -32002, "it has no key")
        await service.stop()
    }

    @Test func connectionKeepsItsIdentityUntilTheSessionEnds() async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        let response = try await peer.call(
            "session.authenticate", #"{"auth":"late-anna"}"#.replacing("late", with: "user"))
        #expect(response["result"]?["uid"] == "anna")
        #expect(response["result"]?["admin"] == false)
        #expect(try await peer.call("check.who")["result"]?["uid"] == "anna")
        #expect(try await peer.call("check.who", #"{"auth":"user-bea"}"#)["result"]?["uid"] == "bea")
        #expect(try await peer.call("session.authenticate", #"{"auth":"wrong"}"#)["error"]?["code"] == -32001)
        #expect(try await peer.call("check.who")["result"]?["uid"] == "anna")
        #expect(try await peer.call("session.end")["result"] == [:])
        #expect(try await peer.call("check.who")["result"] == ["admin": false])
        let administrator = try await peer.call("session.authenticate", #"{"auth":"admin"}"#)
        #expect(administrator["result"] == ["uid": nil, "admin": true, "expiresAt": nil])
        #expect(try await peer.call("check.who", #"{"as":{"uid":"carl"}}"#)["result"]?["uid"] == "carl")
        let carl = try await peer.call("session.authenticate", #"{"auth":"admin","as":{"uid":"carl"}}"#)
        #expect(carl["result"]?["uid"] == "carl")
        #expect(try await peer.call("session.authenticate")["error"]?["data"]?["parameter"] == "auth")
        for (method, params, known) in [
            ("session.authenticate", #"{"auth":"admin","x":1}"#, "known are as, auth, e.g. "),
            ("session.end", #"{"x":1}"#, "there are none, e.g. {}"),
        ] {
            let error = try await peer.call(method, params)["error"]
            #expect(error?["data"]?["parameter"] == "x")
            #expect(error?["data"]?["reason"] == "unknown_parameter")
            #expect(error?["message"]?.string?.contains("'x' is no known parameter; \(known)") == true)
        }
        await service.stop()
    }

    @Test func serviceIsAnAdministratorOfItsMethodsOnlyWhateverTheyAre() async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        let response = try await peer.call("session.authenticate", #"{"auth":"service-of-sessions"}"#)
        #expect(response["result"]?["admin"] == false)
        #expect(try await peer.call("check.administration", #"{"as":"x"}"#)["result"] != nil)
        #expect(try await peer.call("check.who")["result"]?["admin"] == false)
        #expect(try await peer.call("check.signedIn", #"{"count":1}"#)["error"]?["code"] == -32002)
        #expect(try await peer.call("session.end")["result"] == [:])
        #expect(try await peer.call("check.administration")["error"]?["code"] == -32001)
        await service.stop()
    }

    /// It belongs to the holder of the key, not to the administrator whom its method sees.
    @Test func listenerOfAServiceStaysWhenItAuthenticatesAgain() async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        _ = try await peer.call("session.authenticate", #"{"auth":"service"}"#)
        _ = try await peer.call("check.listen")
        _ = try await peer.call("check.listen", #"{"auth":"service"}"#)
        _ = try await peer.call("session.authenticate", #"{"auth":"service"}"#)
        let extended = RPCIdentityChange.extended(.administrator)
        #expect(service.identityChanges.current == [extended, extended])
        _ = try await peer.call("session.authenticate", #"{"auth":"user-anna"}"#)
        #expect(service.identityChanges.current.count == 4)
        for change in service.identityChanges.current.suffix(2) {
            guard case .replaced(.user) = change else {
                Issue.record("\(change)")
                continue
            }
        }
        await service.stop()
    }

    @Test func accessIsCheckedBeforeParamsAreDecoded() async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        #expect(try await peer.call("check.signedIn", #"{"count":"x"}"#)["error"]?["code"] == -32001)
        #expect(try await peer.call("check.signedIn", #"{"count":"x","auth":"user-a"}"#)["error"]?["code"] == -32602)
        #expect(try await peer.call("check.signedIn", #"{"count":1,"auth":"user-a"}"#)["result"] == [:])
        #expect(try await peer.call("check.signedIn", #"{"count":1,"auth":"admin"}"#)["result"] == [:])
        #expect(try await peer.call("check.administration", #"{"as":"x"}"#)["error"]?["code"] == -32001)
        #expect(try await peer.call("check.administration", #"{"auth":"user-a"}"#)["error"]?["code"] == -32002)
        await service.stop()
    }

    @Test func parameterThatAMethodDeclaresItselfIsLeftToIt() async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        let response = try await peer.call("check.administration", #"{"auth":"admin","as":"mine"}"#)
        #expect(response["result"] == ["as": "mine"])
        await service.stop()
    }

    @Test func identityOfTheConnectionEndsWithItsToken() async throws {
        let now = Shared<Int64>(1_000_000)
        let service = try await TestService { $0.now = { now.current } }
        let peer = try await service.peer()
        service.authenticator.shortTokenEnd.withLock { $0 = 1_005_000 }
        let response = try await peer.call("session.authenticate", #"{"auth":"short-anna"}"#)
        #expect(response["result"]?["expiresAt"] == 1_005_000)
        #expect(try await peer.call("check.who")["result"]?["uid"] == "anna")
        now.change { $0 = 1_005_000 }
        let ended = try await peer.call("check.who")
        #expect(ended["error"]?["code"] == -32001)
        #expect(ended["error"]?["data"]?["reason"] == "TOKEN_EXPIRED")
        // What anyone may call stays callable: a new token must come from somewhere.
        #expect(try await peer.call("check.echo")["result"] != nil)
        #expect(try await peer.call("session.authenticate", #"{"auth":"user-anna"}"#)["result"]?["uid"] == "anna")
        #expect(try await peer.call("check.who")["result"]?["uid"] == "anna")
        await service.stop()
    }

    @Test func listenerLearnsWhenItsIdentityChanges() async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        _ = try await peer.call("session.authenticate", #"{"auth":"user-anna"}"#)
        _ = try await peer.call("check.listen")
        _ = try await peer.call("session.authenticate", #"{"auth":"user-anna"}"#)
        _ = try await peer.call("session.authenticate", #"{"auth":"user-bea"}"#)
        _ = try await peer.call("session.end")
        let changes = service.identityChanges.current
        #expect(changes.count == 3)
        guard case .extended(.user(let anna)) = changes.first,
            case .replaced(.user(let bea)) = changes.dropFirst().first
        else {
            Issue.record("\(changes)")
            return
        }
        #expect(anna.uid == "anna")
        #expect(bea.uid == "bea")
        #expect(changes.last == .replaced(.nobody))
        await service.stop()
    }

    @Test func listenerOfACallCredentialOutlivesTheSession() async throws {
        let service = try await TestService()
        let peer = try await service.peer()
        _ = try await peer.call("check.listen", #"{"auth":"user-anna"}"#)
        _ = try await peer.call("session.authenticate", #"{"auth":"user-anna"}"#)
        _ = try await peer.call("session.end")
        #expect(service.identityChanges.current.count == 1)
        await service.stop()
    }

    /// Its key was removed, or its user is refused.
    @Test func identityEndsBeforeItsToken() async throws {
        let service = try await TestService()
        let (anna, bea, calls) = (try await service.peer(), try await service.peer(), try await service.peer())
        for (peer, name) in [(anna, "anna"), (bea, "bea")] {
            _ = try await peer.call("session.authenticate", #"{"auth":"user-\#(name)"}"#)
            #expect(try await peer.call("check.signedIn", #"{"count":1}"#)["result"] == [:])
        }
        _ = try await anna.call("check.listen")
        _ = try await calls.call("check.listen", #"{"auth":"user-anna"}"#)
        service.authenticator.end("anna")
        let refused = try await anna.call("check.signedIn", #"{"count":1}"#)
        #expect(refused["error"]?["data"]?["reason"] == "TOKEN_EXPIRED")
        #expect(try await anna.call("check.echo")["result"] != nil)
        #expect(try await bea.call("check.signedIn", #"{"count":1}"#)["result"] == [:])
        try await eventually("both listeners end") { service.identityChanges.current == [.revoked, .revoked] }
        // Also what begins with an identity that was verified just before.
        _ = try await calls.call("check.listen", #"{"auth":"user-anna"}"#)
        try await eventually("it ends at once") { service.identityChanges.current.count == 3 }
        _ = try await bea.call("check.listen")
        _ = try await bea.call("session.authenticate", #"{"auth":"user-anna"}"#)
        try await eventually("it ends with the new identity") { service.identityChanges.current.count == 5 }
        #expect(service.identityChanges.current.last == .revoked)
        #expect(
            try await bea.call("check.signedIn", #"{"count":1}"#)["error"]?["data"]?["reason"] == "TOKEN_EXPIRED")
        await service.stop()
    }

    @Test func listenerEndsWithItsToken() async throws {
        let time = Shared(WallClock.milliseconds())
        let service = try await TestService { $0.now = { time.current } }
        let peer = try await service.peer()
        service.authenticator.shortTokenEnd.withLock { $0 = time.current + 300 }
        #expect(try await peer.call("check.listen", #"{"auth":"short-anna"}"#)["result"] != nil)
        #expect(service.identityChanges.current == [])
        time.change { $0 += 300 }
        try await eventually("the token ended") { service.identityChanges.current == [.expired] }
        await service.stop()
    }
}
