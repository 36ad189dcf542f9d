package web

// english are the texts that every other language falls back to.
func english() Messages {
	return Messages{
		TokenMissing:      {"Token missing", "This submission carries no token, so it was not executed. Load the page again, or ask for a token, and send it with that."},
		TokenInURL:        {"Token in the address", "A token must not stand in an address, where histories and logs keep it. Send it in the header Idempotent-Token or the form field idempotent_token."},
		RequestIDInvalid:  {"Request id not valid", "A request id has 8 to 128 characters out of A-Z a-z 0-9 . _ and -."},
		KeyMissing:        {"Key missing", "The request does not name its operation, so it was not executed. Add the missing part and send it again."},
		KeyInvalid:        {"Key not valid", "The key of the operation is not well-formed, so nothing was executed. Correct it and send it again."},
		BadRequest:        {"Request not understood", "The request is not as it must be, so nothing was executed. Correct it and send it again."},
		Unauthorized:      {"Not authorized", "This call needs the service key, as Authorization: Bearer."},
		SubjectMissing:    {"Please log in", "It is not known whose request this is, so nothing was executed. Log in and send it again."},
		TokenInvalid:      {"Token not valid", "The token of this submission is not one of ours, so nothing was executed. Load the page again and submit it anew."},
		TokenWrongSubject: {"Not your session any more", "This form was opened in another session: you logged in or out since. Nothing was executed. Check what you entered, and submit it again if it is yours."},
		TokenWrongAction:  {"Token for something else", "The token was given out for another action, so nothing was executed. Load the page again and submit it anew."},
		CrossOrigin:       {"Request from another site", "The browser says that this request comes from another site, so nothing was executed."},
		TokenExpired:      {"The form has expired", "This form was open for too long. Nothing was executed, and nothing of what you entered is lost: submit it again."},
		RequestIDMismatch: {"Request id and token differ", "The request id is not the one of the token. Nothing was executed, and the token is not spent."},
		TokenUsed:         {"Already submitted", "This form was submitted before, or its token is not known any more. Check whether your submission has arrived before you submit it anew."},
		AlreadyDone:       {"Already done", "This submission was executed before, and its answer is not kept. There is no need to send it again."},
		InProgress:        {"Still being worked on", "An earlier request is still being worked on, and this one was not executed. Wait a moment and send the same again."},
		KeyTaken:          {"Not yours", "An operation of this name belongs to somebody else. Nothing was executed."},
		Cancelled:         {"Cancelled", "This operation was cancelled and will not be executed."},
		ClaimLost:         {"Overtaken", "Another attempt has taken this operation over. Send the same again to see what came of it."},
		BodyTooLarge:      {"Too large", "The submission is larger than is allowed here, so nothing was executed. Send a smaller one."},
		PayloadMismatch:   {"Changed since it was submitted", "This was submitted before with other contents. The changed one was not executed."},
		DuplicateInWindow: {"Just submitted", "The same request came in a moment ago. This one was not executed; it may be sent again after the time given."},
		RateLimited:       {"Too many requests", "Too many tokens were asked for in a short time. Wait a moment and try again."},
		StoreUnavailable:  {"Not available at the moment", "It cannot be decided safely whether this was submitted before, so nothing was executed. Send the same again in a moment."},
		OutcomeUnknown:    {"Outcome not known yet", "Your submission was worked on, but its result could not be recorded. Send the same again: it will not be executed twice without need."},
	}
}

func chinese() Messages {
	return Messages{
		TokenMissing:      {"缺少令牌", "此次提交没有携带令牌，因此未被执行。请重新加载页面或重新获取令牌后再提交。"},
		TokenInURL:        {"令牌不能放在网址中", "网址会被历史记录和日志保存，令牌不能放在其中。请使用请求头 Idempotent-Token 或表单字段 idempotent_token。"},
		RequestIDInvalid:  {"请求号无效", "请求号由 8 到 128 个字符组成，只能使用 A-Z a-z 0-9 . _ 和 -。"},
		KeyMissing:        {"缺少业务键", "请求没有指明要执行的业务，因此未被执行。请补全后重新发送。"},
		KeyInvalid:        {"业务键无效", "业务键格式不正确，因此未执行任何操作。请更正后重新发送。"},
		BadRequest:        {"无法理解的请求", "请求格式不正确，因此未执行任何操作。请更正后重新发送。"},
		Unauthorized:      {"未授权", "此调用需要服务密钥，请使用 Authorization: Bearer。"},
		SubjectMissing:    {"请先登录", "无法确认请求属于谁，因此未执行任何操作。请登录后重新发送。"},
		TokenInvalid:      {"令牌无效", "此次提交的令牌不是由我们签发的，因此未执行任何操作。请重新加载页面后再提交。"},
		TokenWrongSubject: {"会话已改变", "此表单是在另一个会话中打开的：您在此之后登录或退出过。未执行任何操作。请核对所填内容，确认无误后再次提交。"},
		TokenWrongAction:  {"令牌用途不符", "此令牌是为其他操作签发的，因此未执行任何操作。请重新加载页面后再提交。"},
		CrossOrigin:       {"来自其他网站的请求", "浏览器表明此请求来自其他网站，因此未执行任何操作。"},
		TokenExpired:      {"表单已过期", "此表单打开的时间过长。未执行任何操作，您填写的内容没有丢失：请再次提交。"},
		RequestIDMismatch: {"请求号与令牌不符", "请求号不是令牌中的请求号。未执行任何操作，令牌仍可使用。"},
		TokenUsed:         {"已经提交过", "此表单已经提交过，或其令牌已无法识别。重新提交之前，请先确认上次提交是否已经到达。"},
		AlreadyDone:       {"已经完成", "此次提交已经执行过，其结果不再保留。无需再次发送。"},
		InProgress:        {"正在处理", "较早的请求仍在处理中，本次请求未被执行。请稍候并重新发送相同的内容。"},
		KeyTaken:          {"不属于您", "同名的业务属于其他人。未执行任何操作。"},
		Cancelled:         {"已取消", "此业务已被取消，不会执行。"},
		ClaimLost:         {"已被接管", "另一次尝试已接管此业务。请重新发送相同的内容以查看结果。"},
		BodyTooLarge:      {"内容过大", "提交的内容超过了允许的大小，因此未执行任何操作。请减小后再发送。"},
		PayloadMismatch:   {"提交后内容已更改", "此前已用其他内容提交过。更改后的内容未被执行。"},
		DuplicateInWindow: {"刚刚提交过", "片刻之前已收到相同的请求。此次未被执行；可在给出的时间之后再次发送。"},
		RateLimited:       {"请求过多", "短时间内请求的令牌过多。请稍候再试。"},
		StoreUnavailable:  {"暂时不可用", "目前无法安全地判断此前是否已经提交，因此未执行任何操作。请稍后重新发送相同的内容。"},
		OutcomeUnknown:    {"结果尚不明确", "您的提交已被处理，但结果未能记录。请重新发送相同的内容：不会无故重复执行。"},
	}
}
