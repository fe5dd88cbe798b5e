// Puts the chosen appearance on the page before anything is drawn; app.js lets one choose.
try {
	document.documentElement.dataset.theme = localStorage.getItem("standpipe-theme") ?? "auto";
} catch {
	// Without storage the system's appearance counts.
}
