class Check: pass
class Settings: pass
def selftest(): pass
