/// The HTML of the pages behind the links of mails, in English and Japanese. Texts of a link stand in it escaped, and
/// no script runs.
struct ActionPage: Sendable {
    /// The messages of pages.
    enum Message: Sendable, Hashable, CaseIterable {
        case done
        case refused
        case unknownApp
        case missingPassword
        case weakPassword
    }

    private let isJapanese: Bool

    init(_ language: String?) { isJapanese = language?.lowercased().hasPrefix("ja") ?? false }

    /// The page with the button that applies the code.
    func form(_ link: ActionLink, _ message: Message? = nil) -> AccountResponse {
        var fields = [("mode", link.mode.rawValue), ("oobCode", link.code)]
        if let language = link.language { fields.append(("lang", language)) }
        if let continueUrl = link.continueUrl { fields.append(("continueUrl", continueUrl)) }
        var form = fields.map { "<input type=\"hidden\" name=\"\($0)\" value=\"\(Self.escaped($1))\">" }.joined()
        if link.mode == .resetPassword {
            form +=
                "<p><label>\(passwordLabel) <input type=\"password\" name=\"newPassword\" required "
                + "autocomplete=\"new-password\"></label></p>"
        }
        let note = message.map { "<p role=\"alert\">\(text($0))</p>" } ?? ""
        return page(
            title(link.mode),
            "\(note)<form method=\"post\" action=\"/__/auth/action\">\(form)<button>\(button)</button></form>",
            status: message == nil ? 200 : 400)
    }

    /// A page with a message alone.
    func message(_ message: Message, status: Int) -> AccountResponse {
        page(text(message), "", status: status)
    }

    private func page(_ title: String, _ content: String, status: Int) -> AccountResponse {
        let html = """
            <!doctype html><html lang="\(isJapanese ? "ja" : "en")"><meta charset="utf-8">\
            <meta name="viewport" content="width=device-width"><meta name="referrer" content="same-origin">\
            <title>\(title)</title><h1>\(title)</h1>\(content)</html>

            """
        var response = AccountResponse(status: status, contentType: AccountResponse.html, body: Array(html.utf8))
        response.contentSecurityPolicy = "default-src 'none'; frame-ancestors 'none'; base-uri 'none'"
        return response
    }

    static func escaped(_ text: String) -> String {
        var result = ""
        for character in text.unicodeScalars {
            switch character {
            case "&": result += "&amp;"
            case "<": result += "&lt;"
            case ">": result += "&gt;"
            case "\"": result += "&quot;"
            case "'": result += "&#39;"
            default: result.unicodeScalars.append(character)
            }
        }
        return result
    }

    // MARK: Texts

    private func title(_ mode: ActionMode) -> String {
        switch mode {
        case .resetPassword: isJapanese ? "パスワードの再設定" : "Set a new password"
        case .verifyEmail: isJapanese ? "メールアドレスの確認" : "Verify your e-mail address"
        case .verifyAndChangeEmail: isJapanese ? "メールアドレスの変更" : "Change your e-mail address"
        case .recoverEmail: isJapanese ? "メールアドレスの復元" : "Restore your e-mail address"
        case .signIn: isJapanese ? "ログイン" : "Sign in"
        }
    }

    private var button: String { isJapanese ? "続ける" : "Continue" }
    private var passwordLabel: String { isJapanese ? "新しいパスワード" : "New password" }

    private func text(_ message: Message) -> String {
        switch message {
        case .done: isJapanese ? "完了しました" : "Done"
        case .refused:
            isJapanese
                ? "リンクが無効か、有効期限が切れています" : "The link has expired, or it was used already"
        case .unknownApp: isJapanese ? "リンク先のアプリが登録されていません" : "The app of this link is not known here"
        case .missingPassword: isJapanese ? "新しいパスワードを入力してください" : "Please enter a new password"
        case .weakPassword: isJapanese ? "パスワードが短すぎるか、推測されやすいものです" : "This password is too short, or easy to guess"
        }
    }
}
