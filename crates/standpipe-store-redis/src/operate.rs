pub struct Server;
